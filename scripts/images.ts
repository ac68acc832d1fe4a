// npm run images: makes the images that a cluster needs, and writes them as archives or pushes them to a registry.
// Prints the values of the chart that name them; everything else goes to stderr.
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ensureMachine, saveImage, stopDocker, tagImage } from '@shellfleet/setup';
import { toChartValues } from './images/chart-values.ts';
import { docker } from './images/docker-program.ts';
import { IMAGE_NAMES, type ImageName, makeImage } from './images/make-images.ts';
import { nameImage } from './images/name-image.ts';

const usage = `usage: npm run -s images -- [--out DIR] [--registry PREFIX] [--names] [--only NAMES] [--session full|slim] [--tag TAG]
  --out DIR          writes an archive of each image, and values.yaml for \`helm install -f\`
  --names            only names them, and makes what is missing
  --registry PREFIX  pushes them as PREFIX/worker, PREFIX/keeper and so on, with the logins of docker
  --only NAMES       some of ${IMAGE_NAMES.join(',')}
  --session VARIANT  which session image; default: full
  --tag TAG          default: the version of the packages and the beginning of the image's id`;

async function main(args: string[]): Promise<void> {
  const { out, registry, only, session, tag } = readArguments(args);
  const report = (line: string) => console.error(line);
  const machine = await ensureMachine(process.env, report);
  try {
    if (out !== undefined) await mkdir(out, { recursive: true });
    const named: Partial<Record<ImageName, string>> = {};
    const missing: string[] = [];
    for (const name of only) {
      const image = await makeImage(name, { machine, report, session }).catch((error: Error) => {
        missing.push(`The image of ${name} is missing: ${error.message}`);
      });
      if (image === undefined) continue;
      const publicName = await nameImage(machine.engine.endpoint, { name, image, registry, tag });
      await tagImage(machine.engine.endpoint, image, publicName);
      named[name] = publicName;
      if (out !== undefined) await archive(publicName, join(out, `${name}.tar`));
      if (registry !== undefined) await docker(['push', '--quiet', publicName]);
    }
    const values = toChartValues(named, { isLoaded: registry === undefined });
    if (out !== undefined) await writeFile(join(out, 'values.yaml'), values);
    process.stdout.write(values);
    for (const line of missing) report(line);
    if (missing.length > 0) process.exitCode = 1;
  } finally {
    if (machine.engine.startedHere) await stopDocker(process.env);
  }

  async function archive(image: string, path: string): Promise<void> {
    await saveImage(machine.engine.endpoint, image, path);
    report(`${image} is in ${path}`);
  }
}

function readArguments(args: string[]) {
  const { values } = parseArgs({
    args,
    options: {
      out: { type: 'string' },
      names: { type: 'boolean', default: false },
      registry: { type: 'string' },
      only: { type: 'string' },
      session: { type: 'string', default: 'full' },
      tag: { type: 'string' },
    },
  });
  const { out, registry, session, tag } = values;
  const only = values.only?.split(',') ?? [...IMAGE_NAMES];
  const unknown = only.filter((name) => !IMAGE_NAMES.includes(name as ImageName));
  if (unknown.length > 0)
    throw new Error(`--only does not know ${unknown.join(', ')}: there are ${IMAGE_NAMES.join(', ')}.`);
  if (session !== 'full' && session !== 'slim') throw new Error('--session is full or slim.');
  if (out === undefined && registry === undefined && !values.names)
    throw new Error('Where to? Give --out DIR or --registry PREFIX, or --names.');
  return {
    out: out === undefined ? undefined : resolve(process.env.INIT_CWD ?? '.', out),
    registry: registry?.replace(/\/+$/, ''),
    only: only as ImageName[],
    session: session as 'full' | 'slim',
    tag,
  };
}

await main(process.argv.slice(2)).catch((error: Error) => {
  console.error(`${error.message}\n${usage}`);
  process.exitCode = 1;
});
