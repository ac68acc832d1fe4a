import { PassThrough } from 'node:stream';
import type Docker from 'dockerode';
import { createBenchContainer } from './bench-container.ts';
import { createKeptShellsRow } from './kept-shells.ts';
import { MarkedShell } from './marked-shell.ts';
import type { Row } from './row.ts';

/**
 * The row of one open shell per session without a fleet: bash is the main process of a container, and this process
 * uses the streams of `docker attach`.
 */
export function createDockerAttachRow(docker: Docker, image: string): Promise<Row> {
  const containers: Docker.Container[] = [];
  const open = async (): Promise<MarkedShell> => {
    const container = await createBenchContainer(docker, image, ['bash']);
    containers.push(container);
    const stream = await container.attach({ stream: true, hijack: true, stdin: true, stdout: true, stderr: true });
    await container.start();
    const shell = new MarkedShell((text) => void stream.write(text));
    const output = new PassThrough();
    output.on('data', (chunk: Buffer) => shell.receive(chunk.toString()));
    docker.modem.demuxStream(stream, output, output);
    return shell;
  };
  const close = async (): Promise<void> => {
    await Promise.all(containers.map((container) => container.remove({ force: true })));
  };
  return createKeptShellsRow('docker-attach', open, close);
}
