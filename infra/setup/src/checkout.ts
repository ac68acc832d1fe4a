import { fileURLToPath } from 'node:url';

/** Whether this runs from the TypeScript source of a checkout, and not from a published package. */
export const isCheckout = import.meta.url.endsWith('.ts');

/** Root of this checkout. A published package has the recipes of the images in a folder with the same paths. */
export const checkoutRoot = fileURLToPath(new URL(isCheckout ? '../../..' : '.', import.meta.url)).replace(/\/$/, '');
