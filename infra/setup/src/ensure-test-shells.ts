import { canInstallPackages, debianPackages, installPackages, type Report } from './debian-packages.ts';
import { findProgram } from './run-program.ts';

/** Installs the shells whose completion is tested, where possible. The test of a missing shell fails. */
export async function ensureTestShells(report: Report): Promise<void> {
  const found = await Promise.all(debianPackages.testShells.map((shell) => findProgram(shell)));
  if (found.every((path) => path !== undefined) || !(await canInstallPackages())) return;
  await installPackages(debianPackages.testShells, report);
}
