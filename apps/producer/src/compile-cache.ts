import { lstatSync, mkdirSync, realpathSync, type Stats } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';

/**
 * Keeps compiled code of this program in the user's cache directory. Node runs the code it finds there, so the
 * directory is used only if nobody else can write to it.
 */
export function useCompileCache(env: NodeJS.ProcessEnv): void {
  // If NODE_COMPILE_CACHE is set, the user has already enabled a cache.
  if (env.NODE_COMPILE_CACHE || env.NODE_DISABLE_COMPILE_CACHE) return;
  const directory = privateDirectory(env);
  if (directory !== undefined) enableCompileCache(directory);
}

/** Returns a directory that nobody else can write or replace, or undefined. */
export function privateDirectory(env: NodeJS.ProcessEnv): string | undefined {
  const uid = process.getuid?.();
  if (uid === undefined) return undefined;
  try {
    const caches =
      env.XDG_CACHE_HOME && isAbsolute(env.XDG_CACHE_HOME) ? env.XDG_CACHE_HOME : join(homedir(), '.cache');
    const wanted = join(caches, 'shellfleet', 'compile');
    mkdirSync(wanted, { recursive: true, mode: 0o700 });
    const directory = realpathSync(wanted);
    const own = lstatSync(directory);
    return own.uid === uid && !canOthersWrite(own) && isSafeBelow(dirname(directory), uid) ? directory : undefined;
  } catch {
    // The disk is full or read-only, or this user has no home directory.
    return undefined;
  }
}

function isSafeBelow(path: string, uid: number): boolean {
  const stats = lstatSync(path);
  const isTrusted = stats.uid === uid || stats.uid === 0;
  // In a sticky directory such as /tmp, others cannot replace files of this user.
  const isFixed = !canOthersWrite(stats) || (stats.mode & 0o1000) !== 0;
  return isTrusted && isFixed && (path === '/' || isSafeBelow(dirname(path), uid));
}

const canOthersWrite = ({ mode }: Stats) => (mode & 0o022) !== 0;
