export function countBy<Item>(items: Item[], keyOf: (item: Item) => string = String): Record<string, number> {
	const counts: Record<string, number> = {};
	for (const item of items) counts[keyOf(item)] = (counts[keyOf(item)] ?? 0) + 1;
	return counts;
}

export const inWords = (counts: Record<string, number>) => Object.entries(counts).map(([what, count]) => `${count} ${what}`).join(', ') || 'nothing';
