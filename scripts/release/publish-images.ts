import { join } from 'node:path';
import { ensureMachine, stopDocker, tagImage } from '@shellfleet/setup';
import { docker } from '../images/docker-program.ts';
import { makeImages } from '../images/make-images.ts';
import { readVersion } from '../images/name-image.ts';
import { pushKeeper } from '../images/push-keeper.ts';
import { resolveBases } from '../images/resolve-bases.ts';
import { root } from '../steps.ts';

/**
 * Pushes the images of the release to a registry, with the version as their tag: keepers of both architectures, and the
 * worker, the API and the session for the architecture of this machine. Throws unless every base image has a digest.
 */
export async function publishImages(registry: string): Promise<void> {
  const bases = await resolveBases();
  const report = (line: string) => console.log(line);
  const machine = await ensureMachine(process.env, report);
  try {
    const version = await readVersion();
    const made = await makeImages({ machine, report, only: ['worker', 'api', 'session'], session: 'full', bases });
    for (const [name, image] of made) {
      const published = `${registry}/${name}:${version}`;
      await tagImage(machine.engine.endpoint, image, published);
      await docker(['push', '--quiet', published]);
      report(`${published} is published`);
    }
    const prebuilt = (arch: string) => join(root, `libs/keeper/prebuilt/linux-${arch}/keeper`);
    const programs = { x64: prebuilt('x64'), arm64: prebuilt('arm64') };
    await pushKeeper({ machine, report, programs, image: `${registry}/keeper:${version}` });
    report(`${registry}/keeper:${version} is published`);
  } finally {
    if (machine.engine.startedHere) await stopDocker(process.env);
  }
}
