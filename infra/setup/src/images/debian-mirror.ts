import { runProgram } from '../run-program.ts';

export type DebianMirror = { url: string; suite: string };

const publicMirror: DebianMirror = { url: 'http://deb.debian.org/debian', suite: 'bookworm' };

/** Returns the mirror from which this machine itself installs, because that is known to be reachable. */
export async function findDebianMirror(): Promise<DebianMirror> {
  const format = '$(REPO_URI) $(RELEASE) $(COMPONENT)';
  const targets = await runProgram('apt-get', ['indextargets', '--format', format, 'Created-By: Packages']);
  return chooseMirror(targets.stdout);
}

/** Selects the main archive of a Debian or Ubuntu from apt's index targets (`url suite component` a line). */
export function chooseMirror(indexTargets: string): DebianMirror {
  for (const line of indexTargets.split('\n')) {
    const [url, suite, component] = line.trim().split(/\s+/);
    if (!url || !suite || component !== 'main') continue;
    // Update and security archives have no complete system, and other vendors' repositories are not Debian.
    if (/-(updates|security|backports|proposed)/.test(suite) || !/\/(debian|ubuntu)\/?$/.test(url)) continue;
    return { url: url.replace(/\/$/, ''), suite };
  }
  return publicMirror;
}
