/** Jest's matchers as what they stand for: as `any` they would switch off type checking around them. */
export const anyText = expect.any(String) as string;
export const textWith = (part: string) => expect.stringContaining(part) as string;
export const textLike = (pattern: RegExp) => expect.stringMatching(pattern) as string;
