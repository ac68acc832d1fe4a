// Part of `npm run release:version`: writes the version of the packages into the chart and the Python client.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../steps.ts';

const { version } = JSON.parse(await readFile(join(root, 'apps/producer/package.json'), 'utf8')) as { version: string };
const path = join(root, 'infra/helm/shellfleet/Chart.yaml');
const chart = await readFile(path, 'utf8');
await writeFile(path, chart.replaceAll(/^(version|appVersion): .*$/gm, `$1: ${version}`));
const projectPath = join(root, 'clients/python/pyproject.toml');
const project = await readFile(projectPath, 'utf8');
await writeFile(projectPath, project.replace(/^version = .*$/m, `version = "${version}"`));
