import { fileURLToPath } from 'node:url';

/** The root of this checkout: set-up builds what it brings up from the sources it belongs to. */
export const checkoutRoot = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');
