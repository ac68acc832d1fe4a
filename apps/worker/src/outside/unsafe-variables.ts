import { DENIED_ENV_NAMES } from '@shellfleet/protocol';

const UNSAFE = new Set([
  ...DENIED_ENV_NAMES,
  ...['PATH', 'CDPATH', 'GLOBIGNORE', 'EXECIGNORE', 'FUNCNEST', 'TMOUT'],
  // Of the loader and of libraries that are loaded by name, as set-user-id programs ignore them.
  ...['GCONV_PATH', 'GETCONF_DIR', 'GLIBC_TUNABLES'],
]);
const UNSAFE_PREFIXES = ['LD_', 'BASH', '__sf_'];

/**
 * Whether a variable chooses programs or libraries by itself, or what a shell does before and between the words of a
 * script. Nobody may set these outside the sandbox, also where a person would be asked.
 */
export function isUnsafe(name: string): boolean {
  return UNSAFE.has(name) || UNSAFE_PREFIXES.some((prefix) => name.startsWith(prefix));
}
