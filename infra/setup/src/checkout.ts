import { fileURLToPath } from 'node:url';

/** True when this runs from the TypeScript source of a checkout. */
export const isCheckout = import.meta.url.endsWith('.ts');

/** Root of this checkout, or the directory of a published package with the same paths of image recipes. */
export const checkoutRoot = fileURLToPath(new URL(isCheckout ? '../../..' : '.', import.meta.url)).replace(/\/$/, '');
