import { egressKeyOf } from '@shellfleet/sealing';
import { ConfigError } from '../config/config.ts';
import { readEgressConfig } from '../config/egress-config.ts';
import { openLog } from '../log/open-log.ts';
import { createAddressCheck } from './addresses.ts';
import { EgressProxy } from './egress-proxy.ts';

// The program of the egress proxy of a fleet (apps/worker/src/egress/egress-proxy.ts). It is a program of the worker's
// image and not a verb of the command line, as nobody starts it by hand.

/** Time that connections have to end after a SIGTERM. The kubelet kills after 30 s. */
const GRACE_MS = 25_000;

async function run(): Promise<void> {
  const config = readEgressConfig(process.env);
  const { logger } = openLog(config.logLevel);
  const proxy = new EgressProxy({
    keys: config.sealKeys.map(egressKeyOf),
    rules: { hosts: config.hosts, mayConnectTo: createAddressCheck(config.privateAddresses) },
    lookups: config.lookups,
    logger,
  });
  const port = await proxy.listen(config.port);
  logger.info({ 'server.port': port }, 'egress.listening');
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.once(signal, () => void proxy.close(GRACE_MS).then(() => process.exit(0)));
}

run().catch((error: unknown) => {
  if (!(error instanceof ConfigError)) throw error;
  process.stderr.write(`shellfleet: ${error.message}\n`);
  process.exit(2);
});
