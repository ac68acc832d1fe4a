import { canInstallPackages, debianPackages, installPackages, type Report } from './debian-packages.ts';
import { findProgram } from './run-program.ts';

/** Installs the programs that only tests run, where possible. The test of a missing program fails. */
export async function ensureTestPrograms(report: Report): Promise<void> {
  const found = await Promise.all(debianPackages.testPrograms.map((program) => findProgram(program)));
  if (found.every((path) => path !== undefined) || !(await canInstallPackages())) return;
  await installPackages(debianPackages.testPrograms, report);
}
