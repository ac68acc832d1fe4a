import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type Docker from 'dockerode';
import { startBenchContainer } from './bench-container.ts';
import { eachInTurn, expectOutput, type Row, type Script } from './row.ts';

const run = promisify(execFile);

/**
 * The row of scripts and agents that run `docker exec CONTAINER sh -c SCRIPT`: a fresh process of the docker program
 * for each command.
 */
export async function createDockerExecCliRow(docker: Docker, image: string, dockerHost: string): Promise<Row> {
  const container = await startBenchContainer(docker, image, ['sleep', 'infinity']);
  const env = { ...process.env, DOCKER_HOST: dockerHost };
  const one = async (script: Script): Promise<void> => {
    const { stdout } = await run('docker', ['exec', container.id, 'sh', '-c', script], { env });
    expectOutput(stdout, script);
  };
  return {
    name: 'docker-exec-cli',
    workerPid: undefined,
    one,
    many: (sessions, perSession) => eachInTurn(sessions, perSession, () => one('echo hi')),
    async close() {
      await container.remove({ force: true });
    },
  };
}
