import { canInstallPackages, debianPackages, installPackages, type Report } from './debian-packages.ts';
import { findProgram, runProgram } from './run-program.ts';

/** Python of Debian, which the tests of the Python client use. Another one on PATH may lack its modules. */
const PYTHON = '/usr/bin/python3';
const findsModules = `import importlib.util as util
assert all(util.find_spec(name) for name in ('ensurepip', 'setuptools', 'wheel'))`;

/** Installs the programs that only tests run, where possible. The test of a missing program fails. */
export async function ensureTestPrograms(report: Report): Promise<void> {
  const found = await Promise.all(debianPackages.testPrograms.map((program) => findProgram(program)));
  const python = await runProgram(PYTHON, ['-c', findsModules]);
  const missing = [
    ...(found.every((path) => path !== undefined) ? [] : debianPackages.testPrograms),
    ...(python.exitCode === 0 ? [] : debianPackages.pythonTests),
  ];
  if (missing.length === 0 || !(await canInstallPackages())) return;
  await installPackages(missing, report);
}
