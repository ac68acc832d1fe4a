import { fileURLToPath } from 'node:url';

/** True when this runs from the TypeScript source of a checkout. */
export const isCheckout = import.meta.url.endsWith('.ts');

/** Root of this checkout. In a published package: its directory, in which the image recipes have the same paths. */
export const checkoutRoot = fileURLToPath(new URL(isCheckout ? '../../..' : '.', import.meta.url)).replace(/\/$/, '');
