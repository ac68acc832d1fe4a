import { Fleet } from '@shellfleet/client';
import { Redis } from 'ioredis';

// A producer that is killed right before one step on the way to its first command. Started by a test with: redis URL, namespace, seal key, step.

const [redisUrl = '', namespace = '', sealKey = '', step = ''] = process.argv.slice(2);

/** The first call of each step, as it leaves for Redis. Scripts of the mailbox go by hash; `wait` names BullMQ's list in the call that adds a job. */
const STEPS: Record<string, (name: string, args: string[]) => boolean> = {
  index: (name) => name === 'zadd',
  submit: (name, args) => name === 'evalsha' && args.some((argument) => argument === 'command'),
  job: (name, args) =>
    /^(evalsha|eval|addStandardJob.*|addPrioritizedJob.*)$/.test(name) &&
    args.some((argument) => argument.endsWith(':sessions-docker:wait')),
};

const fleet = await Fleet.connect({ redisUrl, namespace, sealKeys: [sealKey] });
const { sendCommand } = Redis.prototype;
Redis.prototype.sendCommand = function (command, stream) {
  if (STEPS[step]?.(command.name, command.args.map(String))) process.kill(process.pid, 'SIGKILL');
  return sendCommand.call(this, command, stream);
};
const session = await fleet.session('s');
// What was sent has left.
await new Promise((resolve) => setImmediate(resolve));
await session.submit('echo first');
process.exit(0);
