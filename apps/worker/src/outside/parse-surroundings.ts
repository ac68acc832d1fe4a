import { isUnsafe } from './unsafe-variables.ts';

// What the session's shell says about itself. Whoever controls the session writes it, so it is parsed strictly, and nothing of it decides
// which programs and libraries run outside.

/** The directory of a shell, and the variables that it exports. */
export interface Surroundings {
  cwd: string;
  env: Record<string, string>;
}

const LONGEST_PATH_BYTES = 4_096;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Set by every shell and by every sandbox itself. */
const ITS_OWN = ['_', 'PWD', 'OLDPWD', 'SHLVL', 'PPID', 'UID', 'EUID', 'CODEX_HOME'];

/** Undefined when it is not what the script of readSurroundings prints. `mark`: what that printed around it. */
export function parseSurroundings(printed: Buffer, mark: string): Surroundings | undefined {
  const around = Buffer.from(`${mark}\0`);
  const from = printed.indexOf(around) + around.byteLength;
  const to = printed.lastIndexOf(around);
  if (from < around.byteLength || to < from) return undefined;
  const [directory, ...pairs] = printed.toString('latin1', from, to).split('\0').map(decode);
  // The newline is that of pwd.
  if (directory?.startsWith('/') !== true || !directory.endsWith('\n') || pairs.pop() !== '') return undefined;
  const cwd = directory.slice(0, -1);
  if (Buffer.byteLength(cwd) > LONGEST_PATH_BYTES) return undefined;
  return { cwd, env: Object.fromEntries(pairs.flatMap(toVariable)) };
}

/** Names of functions that bash exports are no names of variables. A value that is no text is left out. */
function toVariable(pair: string | undefined): [string, string][] {
  if (pair === undefined) return [];
  const at = pair.indexOf('=');
  const name = pair.slice(0, at);
  const isItsOwn = ITS_OWN.includes(name) || name.startsWith('CODEX_SANDBOX');
  return at < 1 || !NAME.test(name) || isUnsafe(name) || isItsOwn ? [] : [[name, pair.slice(at + 1)]];
}

/** Undefined for bytes that are not UTF-8. */
function decode(latin1: string): string | undefined {
  const bytes = Buffer.from(latin1, 'latin1');
  const text = bytes.toString('utf8');
  return Buffer.from(text, 'utf8').equals(bytes) ? text : undefined;
}
