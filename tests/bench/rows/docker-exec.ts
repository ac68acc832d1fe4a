import { PassThrough } from 'node:stream';
import { finished } from 'node:stream/promises';
import type Docker from 'dockerode';
import { startBenchContainer } from './bench-container.ts';
import { eachInTurn, expectOutput, type Row, type Script } from './row.ts';

/**
 * The row of the usual way without a fleet: a fresh `docker exec` per command in a running container, with
 * demultiplexed output and the exit code by inspect.
 */
export async function createDockerExecRow(docker: Docker, image: string): Promise<Row> {
  const container = await startBenchContainer(docker, image, ['sleep', 'infinity']);

  const run = async (script: Script): Promise<void> => {
    const exec = await container.exec({ Cmd: ['sh', '-c', script], AttachStdout: true, AttachStderr: true });
    const stream = await exec.start({});
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const chunks: Buffer[] = [];
    stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    stderr.resume();
    docker.modem.demuxStream(stream, stdout, stderr);
    await finished(stream, { writable: false });
    const { ExitCode } = await exec.inspect();
    if (ExitCode !== 0) throw new Error(`docker exec ended with ${ExitCode}`);
    expectOutput(Buffer.concat(chunks).toString(), script);
  };
  return {
    name: 'docker-exec',
    workerPid: undefined,
    one: run,
    many: (sessions, perSession) => eachInTurn(sessions, perSession, () => run('echo hi')),
    async close() {
      await container.remove({ force: true });
    },
  };
}
