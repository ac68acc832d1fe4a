import { Fleet } from '@shellfleet/client';

// A producer that a test stops while its command waits or runs. Started with: redis URL, namespace, seal key. Sends the
// id of its command, then the outcome of the Result or the code of the error.

const [redisUrl = '', namespace = '', sealKey = ''] = process.argv.slice(2);

const fleet = await Fleet.connect({ redisUrl, namespace, sealKeys: [sealKey] });
const command = await (await fleet.session('s')).submit('echo ran');
process.send?.(command.id);
const end = await command.result().then(
  ({ outcome }) => outcome,
  ({ code }) => code,
);
process.send?.(end);
process.disconnect();
await fleet.close();
