import type { ClientSupervisor } from '../drive/client-supervisor.ts';
import type { Injection, Stage } from './stage.ts';

const pickClient = ({ clients }: Stage, choice: number): ClientSupervisor =>
  clients[Math.floor(choice * clients.length)] as ClientSupervisor;

/** Ends a client process, which its supervisor starts again at once. */
const end =
  (signal: NodeJS.Signals): Injection =>
  async (stage, choice) => {
    const client = pickClient(stage, choice);
    client.signal(signal);
    return { target: client.name, heal: async () => {} };
  };

const stop: Injection = async (stage, choice) => {
  const client = pickClient(stage, choice);
  client.signal('SIGSTOP');
  return {
    target: client.name,
    async heal() {
      client.signal('SIGCONT');
    },
  };
};

export const clientFaults = {
  'client-kill': end('SIGKILL'),
  'client-term': end('SIGTERM'),
  'client-stop': stop,
  'client-asleep': stop,
};
