import { readFile } from 'node:fs/promises';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import type { PackedPackage } from './pack-packages.ts';

/** Kinds of resolution that cannot load ES modules. All packages are ES modules. */
const notServed = ['node10', 'node16-cjs'];

/** Returns the findings of publint and of "Are the types wrong". Packages of programs lack types. */
export async function findFaults({ tarball }: PackedPackage): Promise<string[]> {
  const bytes = new Uint8Array(await readFile(tarball));
  return [...(await lint(bytes)), ...(await checkTypes(bytes))];
}

async function lint(bytes: Uint8Array<ArrayBuffer>): Promise<string[]> {
  const pack = { tarball: bytes.buffer };
  const { messages, pkg } = await publint({ level: 'suggestion', strict: true, pack });
  return messages.map((message) => `publint: ${formatMessage(message, pkg, { color: false }) ?? message.code}`);
}

async function checkTypes(bytes: Uint8Array): Promise<string[]> {
  const checked = await checkPackage(createPackageFromTarballData(bytes));
  if (checked.types === false) return [];
  const problems = checked.problems.filter(
    (problem) => !('resolutionKind' in problem && notServed.includes(problem.resolutionKind)),
  );
  return problems.map((problem) => `types: ${JSON.stringify(problem)}`);
}
