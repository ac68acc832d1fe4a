import { canInstallPackages, debianPackages, installPackages, type Report } from './debian-packages.ts';
import { findProgram } from './run-program.ts';

/**
 * Installs what the bubblewrap policy needs, where that is possible. Elsewhere a worker that offers the policy says
 * what is missing.
 */
export async function ensureBubblewrap(report: Report): Promise<void> {
  if ((await findProgram('bwrap')) === undefined && (await canInstallPackages()))
    await installPackages(debianPackages.bubblewrap, report);
}
