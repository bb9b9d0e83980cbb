import { github } from './github';
import type { ProviderPreset } from './preset';
import { stripe } from './stripe';

export type { Place, ProviderPreset } from './preset';
export { readDelivery, placeInWords, type Delivery } from './readDelivery';

/** All presets, in the order in which the editor lists them. */
export const PRESETS: readonly ProviderPreset[] = [github, stripe];

export function presetOf(slug: string): ProviderPreset | undefined {
	return PRESETS.find((preset) => preset.slug === slug);
}
