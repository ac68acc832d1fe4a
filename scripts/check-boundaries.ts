import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readSource } from './boundaries/read-source.ts';
import { rules } from './boundaries/rules.ts';
import { root } from './steps.ts';

// Who may import whom. The rules, each with what to do instead, are in boundaries/rules.ts.

async function main(folder: string): Promise<number> {
  let files = 0;
  let violations = 0;
  const exclude = (name: string): boolean => name === 'node_modules' || name === 'dist';
  for await (const path of glob('{libs,apps,infra,tests,examples}/**/*.ts', { cwd: folder, exclude })) {
    files += 1;
    const file = readSource(path, await readFile(join(folder, path), 'utf8'));
    for (const rule of rules) {
      for (const violation of rule.check(file)) {
        violations += 1;
        console.error(`${path}: ${violation} (${rule.name})`);
      }
    }
  }
  // A check that reads nothing would pass for ever.
  if (files === 0) {
    console.error(`no source file below ${folder}: the import boundaries were not checked`);
    return 1;
  }
  return violations === 0 ? 0 : 1;
}

process.exitCode = await main(process.argv[2] ?? root);
