import { fileURLToPath } from 'node:url';

/** Whether this program runs from a checkout: published packages contain JavaScript only. */
export const runsFromSource = import.meta.url.endsWith('.ts');

const modules = runsFromSource ? '../../../../node_modules' : '../../node_modules';

/** Directory for compiled code. It is next to the code, so that only users who can change the code can change it. */
export const compileCache = fileURLToPath(new URL(`${modules}/.cache/shellfleet-worker`, import.meta.url));
