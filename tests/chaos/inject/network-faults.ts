import type { RedisProxy } from './redis-proxy.ts';
import { type Injection, pickWorker, type Stage } from './stage.ts';

const LATENCY_MS = 60;

function pickWay(stage: Stage, choice: number): { hostId: string; proxy: RedisProxy } {
  const { hostId } = pickWorker(stage, choice);
  return { hostId, proxy: stage.proxies.get(hostId) as RedisProxy };
}

const cut: Injection = async (stage, choice) => {
  const { hostId, proxy } = pickWay(stage, choice);
  proxy.cut();
  return { target: hostId, heal: async () => proxy.mend() };
};

const latency: Injection = async (stage, choice) => {
  const { hostId, proxy } = pickWay(stage, choice);
  proxy.delay(LATENCY_MS);
  return { target: hostId, heal: async () => proxy.delay(0) };
};

const loseReply: Injection = async (stage, choice) => {
  const { hostId, proxy } = pickWay(stage, choice);
  proxy.loseReply();
  return { target: hostId, heal: async () => {} };
};

export const networkFaults = { partition: cut, latency, 'lost-reply': loseReply };
