import { readFile } from 'node:fs/promises';
import { tryJson } from '@shellfleet/protocol';
import { toBatchFileError } from './batch-file-error.ts';
import { type BatchManifest, manifestSchema } from './manifest.ts';
import { replaceInOneStep } from './replace-file.ts';

const pathOf = (resultsPath: string) => `${resultsPath}.batch`;

/** Reads the manifest of a results file. Returns undefined without a valid one. */
export async function readBatchManifest(resultsPath: string): Promise<BatchManifest | undefined> {
  const text = await readFile(pathOf(resultsPath), 'utf8').catch(() => '');
  return manifestSchema.safeParse(tryJson(text)).data;
}

/** Replaces the manifest of a results file in one step. Throws FILE_…. */
export async function writeManifest(resultsPath: string, manifest: BatchManifest): Promise<void> {
  const text = `${JSON.stringify(manifest)}\n`;
  await replaceInOneStep(pathOf(resultsPath), (file) => file.appendFile(text)).catch((cause: unknown) => {
    throw toBatchFileError(pathOf(resultsPath), cause);
  });
}
