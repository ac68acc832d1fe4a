import { fileURLToPath } from 'node:url';

/** Whether this runs from the TypeScript source of a checkout, and not from a published package. */
export const isCheckout = import.meta.url.endsWith('.ts');

/** The root of this checkout. A published package holds the recipes of the images below a folder of its own, at the same paths. */
export const checkoutRoot = fileURLToPath(new URL(isCheckout ? '../../..' : '.', import.meta.url)).replace(/\/$/, '');
