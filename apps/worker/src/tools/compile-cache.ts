import { fileURLToPath } from 'node:url';

/** Whether this program runs from its TypeScript source, in a checkout. A published package holds JavaScript alone. */
export const runsFromSource = import.meta.url.endsWith('.ts');

const modules = runsFromSource ? '../../../../node_modules' : '../../node_modules';

/** Folder of what the worker and its tool processes have compiled. It is beside the code and has the same owner. */
export const compileCache = fileURLToPath(new URL(`${modules}/.cache/shellfleet-worker`, import.meta.url));
