import { fileURLToPath } from 'node:url';

/** Whether this program runs from a checkout: published packages contain JavaScript only. */
export const runsFromSource = import.meta.url.endsWith('.ts');

const modules = runsFromSource ? '../../../../node_modules' : '../../node_modules';

/**
 * Directory for the compiled code of the worker and its tool processes. It has the same owner as the code next to it.
 */
export const compileCache = fileURLToPath(new URL(`${modules}/.cache/shellfleet-worker`, import.meta.url));
