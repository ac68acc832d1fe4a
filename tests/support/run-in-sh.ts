import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { RunScript } from '@shellfleet/worker/test-support';

/**
 * Runs a script as `sh -c` on this machine. Each script has its own process, so variables and the directory are not
 * kept.
 */
export const runInSh: RunScript = ({ script, env, stdin, timeoutMs }, keeper) => {
  const child = spawn('/bin/sh', ['-c', String(script)], { env: { ...process.env, ...env }, detached: true });
  let reason: 'exited' | 'cancelled' | 'wall' = 'exited';
  const kill = (why: typeof reason) => {
    if (reason !== 'exited' || child.pid === undefined) return;
    reason = why;
    process.kill(-child.pid, 'SIGKILL');
  };
  const deadline = timeoutMs === undefined ? undefined : setTimeout(() => kill('wall'), timeoutMs);
  child.stdout.on('data', (data: Buffer) => keeper.print(data));
  child.stderr.on('data', (data: Buffer) => keeper.print(data, 'stderr'));
  child.stdin.on('error', () => {});
  child.on('close', (code, signal) => {
    clearTimeout(deadline);
    const exitCode = code ?? 128 + constants.signals[signal ?? 'SIGKILL'];
    keeper.end({ reason, exitCode: reason === 'exited' ? exitCode : null });
  });
  if (stdin !== 'open') child.stdin.end(stdin);
  let taken = 0;
  return {
    stop: () => kill('cancelled'),
    input(bytes, end) {
      child.stdin.write(bytes, (error) => {
        if (!error) taken += bytes.byteLength;
        keeper.inputTaken(taken, Boolean(error));
      });
      if (end) child.stdin.end();
    },
  };
};
