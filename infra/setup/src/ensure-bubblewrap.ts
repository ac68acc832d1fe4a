import { canInstallPackages, debianPackages, installPackages, type Report } from './debian-packages.ts';
import { findProgram } from './run-program.ts';

/** Installs the programs of the bubblewrap policy where possible. Elsewhere a worker reports the missing programs. */
export async function ensureBubblewrap(report: Report): Promise<void> {
  if ((await findProgram('bwrap')) === undefined && (await canInstallPackages()))
    await installPackages(debianPackages.bubblewrap, report);
}
