import { DENIED_ENV_NAMES } from '@shellfleet/protocol';

const UNSAFE = new Set([
  ...DENIED_ENV_NAMES,
  ...['PATH', 'CDPATH', 'GLOBIGNORE', 'EXECIGNORE', 'FUNCNEST', 'TMOUT'],
  // Names that the loader and C library ignore in set-user-id programs.
  ...['GCONV_PATH', 'GETCONF_DIR', 'GLIBC_TUNABLES'],
]);
const UNSAFE_PREFIXES = ['LD_', 'BASH', '__sf_'];

/**
 * Returns whether a variable chooses programs, or what a shell runs besides a script. The wider sandbox allows none.
 */
export function isUnsafe(name: string): boolean {
  return UNSAFE.has(name) || UNSAFE_PREFIXES.some((prefix) => name.startsWith(prefix));
}
