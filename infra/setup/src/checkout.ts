import { fileURLToPath } from 'node:url';

/** The root of this checkout. Set-up builds from the sources of its own checkout. */
export const checkoutRoot = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');
