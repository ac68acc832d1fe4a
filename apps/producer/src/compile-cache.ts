import { lstatSync, mkdirSync, realpathSync, type Stats } from 'node:fs';
import module from 'node:module';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';

/** Node 20 has none. */
type Enable = ((folder: string) => unknown) | undefined;

/**
 * Keeps what V8 has compiled of this program for its next call, in the user's cache folder. Node takes what it finds
 * there for the program's own code, so the folder is used only if nobody else can write to it. Without such a folder
 * every call compiles anew.
 */
export function useCompileCache(env: NodeJS.ProcessEnv): void {
  const enable = module.enableCompileCache as Enable;
  // With NODE_COMPILE_CACHE it is on already, where its user wants it.
  if (enable === undefined || env.NODE_COMPILE_CACHE || env.NODE_DISABLE_COMPILE_CACHE) return;
  const folder = privateFolder(env);
  if (folder !== undefined) enable(folder);
}

/** A folder of this user, below folders in which nobody else can replace it. Undefined when there is none. */
export function privateFolder(env: NodeJS.ProcessEnv): string | undefined {
  const uid = process.getuid?.();
  if (uid === undefined) return undefined;
  try {
    const caches =
      env.XDG_CACHE_HOME && isAbsolute(env.XDG_CACHE_HOME) ? env.XDG_CACHE_HOME : join(homedir(), '.cache');
    const wanted = join(caches, 'shellfleet', 'compile');
    mkdirSync(wanted, { recursive: true, mode: 0o700 });
    const folder = realpathSync(wanted);
    const own = lstatSync(folder);
    return own.uid === uid && !canOthersWrite(own) && isSafeBelow(dirname(folder), uid) ? folder : undefined;
  } catch {
    // A full or read-only disk, or no home.
    return undefined;
  }
}

function isSafeBelow(path: string, uid: number): boolean {
  const stats = lstatSync(path);
  const isTrusted = stats.uid === uid || stats.uid === 0;
  // In a sticky folder such as /tmp, others cannot replace what is not theirs.
  const isFixed = !canOthersWrite(stats) || (stats.mode & 0o1000) !== 0;
  return isTrusted && isFixed && (path === '/' || isSafeBelow(dirname(path), uid));
}

const canOthersWrite = ({ mode }: Stats) => (mode & 0o022) !== 0;
