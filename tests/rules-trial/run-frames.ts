import { chmod, mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type Docker from 'dockerode';

interface FramedRun {
  image: string;
  entrypoint: string[];
  env: string[];
  binds?: string[];
  /** Frames, each of which is written to stdin after its length. */
  frames: readonly Buffer[];
}

/**
 * Runs a trial's program (`run` in `directory`) in a container without network. Returns the content of /trial/out/log.
 */
export async function runFrames(
  docker: Docker,
  directory: string,
  { image, entrypoint, env, binds = [], frames }: FramedRun,
): Promise<Buffer> {
  const io = await mkdtemp(join(directory, 'io-'));
  const [input, out] = [join(io, 'frames'), join(io, 'out')];
  await writeFile(input, Buffer.concat(frames.map(toFrame)));
  await mkdir(out);
  for (const path of [io, out]) await chmod(path, 0o777);
  const container = await docker.createContainer({
    Image: image,
    User: '65534:65534',
    WorkingDir: '/tmp',
    Env: env,
    Entrypoint: entrypoint,
    OpenStdin: true,
    StdinOnce: true,
    HostConfig: {
      Binds: [`${join(directory, 'run')}:/trial/run:ro`, ...binds, `${out}:/trial/out`],
      Tmpfs: { '/tmp': 'size=16m,mode=1777' },
      ReadonlyRootfs: true,
      NetworkMode: 'none',
      CapDrop: ['ALL'],
      PidsLimit: 256,
      Memory: 256 << 20,
    },
  });
  try {
    const stdin = await container.attach({ stream: true, stdin: true, stdout: true, stderr: true, hijack: true });
    await container.start();
    stdin.resume();
    stdin.end(await readFile(input));
    const { StatusCode: exitCode } = (await container.wait()) as { StatusCode: number };
    if (exitCode !== 0) throw new Error(`The trial in ${image} ended with exit code ${exitCode}.`);
    return await readFile(join(out, 'log'));
  } finally {
    await container.remove({ force: true, v: true });
  }
}

function toFrame(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  return Buffer.concat([length, bytes]);
}
