import { Fleet } from '@shellfleet/client';
import { Redis } from 'ioredis';

// A producer that is killed right before one step of its first submit. Started by a test with: redis URL, namespace,
// seal key, step.

const [redisUrl = '', namespace = '', sealKey = '', step = ''] = process.argv.slice(2);

/**
 * Matches the first Redis call of each step. Mailbox scripts are called by hash; `wait` is BullMQ's list in a call that
 * adds a job.
 */
const STEPS: Record<string, (name: string, args: string[]) => boolean> = {
  index: (name) => name === 'zadd',
  submit: (name, args) => name === 'evalsha' && args.some((argument) => argument === 'command'),
  job: (name, args) =>
    /^(evalsha|eval|addStandardJob.*|addPrioritizedJob.*)$/.test(name) &&
    args.some((argument) => /:sessions-docker~[^:]*:wait$/.test(argument)),
};

const fleet = await Fleet.connect({ redisUrl, namespace, sealKeys: [sealKey] });
const { sendCommand } = Redis.prototype;
Redis.prototype.sendCommand = function (command, stream) {
  if (STEPS[step]?.(command.name, command.args.map(String))) process.kill(process.pid, 'SIGKILL');
  return sendCommand.call(this, command, stream);
};
const session = await fleet.session('s');
// Waits for one turn of the event loop, in which the earlier calls are written to the socket.
await new Promise((resolve) => setImmediate(resolve));
await session.submit('echo first');
process.exit(0);
