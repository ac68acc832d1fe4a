import { PassThrough } from 'node:stream';
import type Docker from 'dockerode';
import { createBenchContainer } from './bench-container.ts';
import { MarkedShell } from './marked-shell.ts';
import { eachInTurn, type Row } from './row.ts';

/** A shell kept open per session without a fleet: bash as the main process of a container, through the streams of `docker attach` in this process. */
export async function createDockerAttachRow(docker: Docker, image: string): Promise<Row> {
  const containers: Docker.Container[] = [];
  const shells: MarkedShell[] = [];
  const open = async (): Promise<void> => {
    const container = await createBenchContainer(docker, image, ['bash']);
    containers.push(container);
    const stream = await container.attach({ stream: true, hijack: true, stdin: true, stdout: true, stderr: true });
    await container.start();
    const shell = new MarkedShell((text) => void stream.write(text));
    const output = new PassThrough();
    output.on('data', (chunk: Buffer) => shell.receive(chunk.toString()));
    docker.modem.demuxStream(stream, output, output);
    await shell.run('true');
    shells.push(shell);
  };
  await open();
  return {
    name: 'docker-attach',
    workerPid: undefined,
    one: (script) => shells[0]!.run(script),
    async many(sessions, perSession) {
      while (shells.length < sessions) await open(); // in the warm-up
      await eachInTurn(sessions, perSession, (session) => shells[session]!.run('echo hi'));
    },
    async close() {
      await Promise.all(containers.map((container) => container.remove({ force: true })));
    },
  };
}
