import { type Examination, MOST_PROBES } from '@shellfleet/keeper';
import { describe, expect, test } from 'vitest';
import { type PodProof, provePod } from './prove-pod.ts';

const enforced: Omit<Examination, 'probes'> = {
  ...{ effectiveCapabilities: 0n, boundingCapabilities: 0n, noNewPrivs: true, seccomp: 2, execWorkspace: true },
  memoryMaxBytes: 1_024,
};
const server = 'https://10.96.0.1';

function proofOf(
  of: Partial<PodProof> = {},
  cluster: Partial<PodProof['plan']['cluster']> = {},
  network: PodProof['plan']['network'] = 'restricted',
): PodProof {
  const limits = { memoryBytes: 1_024, pids: undefined } as PodProof['plan']['limits'];
  const settings = { unenforced: [], userNamespaces: false, ...cluster } as PodProof['plan']['cluster'];
  return {
    name: 'sf-1',
    server,
    probes: [],
    neighbour: undefined,
    ...of,
    plan: { limits, network, cluster: settings },
  };
}

const patience = { everyMs: 1, withinMs: 40 };

/** Returns a keeper that reaches these addresses, each so many times, and what it was asked. */
function keeperThatReaches(...reached: string[] | [Record<string, number>]) {
  const [first] = reached;
  const left = new Map(
    typeof first === 'object'
      ? Object.entries(first)
      : (reached as string[]).map((one) => [one, Number.POSITIVE_INFINITY] as const),
  );
  const asked: string[][] = [];
  const examine = async (probes: readonly string[]): Promise<Examination> => {
    asked.push([...probes]);
    const results = probes.map((one) => {
      const times = left.get(one) ?? 0;
      left.set(one, times - 1);
      return [one, times > 0 ? 'connected' : 'timeout'] as const;
    });
    return { ...enforced, probes: new Map(results) };
  };
  return { asked, examine };
}

describe('the proof of a Pod', () => {
  test('tries the API server, what the operator names, and a neighbour', async () => {
    const { asked, examine } = keeperThatReaches();
    const of = proofOf({ probes: ['[fd00::1]:80', 'db.example:5432'], neighbour: '10.0.0.7:7443' }, {}, 'full');
    await provePod(of, examine, { resolve: async () => ['10.1.1.1', 'fd00::9'] });
    expect(asked).toEqual([['10.96.0.1:443', '[fd00::1]:80', '10.1.1.1:5432', '[fd00::9]:5432', '10.0.0.7:7443']]);
  });

  test('tries the metadata services of clouds where the network is not full', async () => {
    const { examine } = keeperThatReaches('168.63.129.16:80');
    const patience = { everyMs: 1, withinMs: 0 };
    await expect(provePod(proofOf(), examine, { patience })).rejects.toThrow('reaches 168.63.129.16:80');
    await provePod(proofOf({}, {}, 'full'), examine, { patience });
  });

  test('fails with each shortfall and the setting that mends it', async () => {
    const { asked, examine } = keeperThatReaches('10.96.0.1:443');
    await expect(provePod(proofOf({}, { userNamespaces: true }), examine, { patience })).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      message: expect.stringMatching(
        /^The Pod sf-1 lacks .*userNamespaces.*10\.96\.0\.1:443.*unenforced: \['network'\]/,
      ),
      context: { issues: [{ path: 'policy' }, { path: 'sandbox.network' }] },
    });
    // No wait for the network mends the first one.
    expect(asked).toHaveLength(1);
  });

  test('waits for a network that applies its policies late', async () => {
    const { asked, examine } = keeperThatReaches({ '10.96.0.1:443': 3, '10.0.0.7:7443': 2 });
    const of = proofOf({ neighbour: '10.0.0.7:7443' }, {}, 'full');
    await provePod(of, examine, { patience: { everyMs: 1, withinMs: 10_000 } });
    const both = ['10.96.0.1:443', '10.0.0.7:7443'];
    expect(asked).toEqual([both, both, both, ['10.96.0.1:443']]);
  });

  test('fails when the network applies no policy in time', async () => {
    const { asked, examine } = keeperThatReaches('10.96.0.1:443');
    await expect(provePod(proofOf(), examine, { patience })).rejects.toThrow('reaches 10.96.0.1:443');
    expect(asked.length).toBeGreaterThan(1);
  });

  test('tries nothing where the operator accepts any network', async () => {
    const { asked, examine } = keeperThatReaches('10.96.0.1:443');
    await provePod(proofOf({}, { unenforced: ['network'] }), examine);
    expect(asked).toEqual([[]]);
  });

  test('fails for a name without an address, which nothing could try', async () => {
    const examine = async (probes: readonly string[]): Promise<Examination> => ({
      ...enforced,
      probes: new Map(probes.map((one) => [one, one.startsWith('away') ? 'failed' : 'timeout'])),
    });
    const resolve = () => Promise.reject(new Error('ENOTFOUND'));
    const of = proofOf({ probes: ['away.example:1'] });
    await expect(provePod(of, examine, { resolve })).rejects.toThrow('could not try away.example:1');
  });

  test('asks the keeper again for more addresses than it tries at once', async () => {
    const probes = Array.from({ length: MOST_PROBES + 3 }, (_, i) => `10.0.1.${i}:80`);
    const { asked, examine } = keeperThatReaches('10.0.1.18:80');
    await expect(provePod(proofOf({ probes }), examine, { patience })).rejects.toThrow('reaches 10.0.1.18:80');
    expect(asked.slice(0, 2).map(({ length }) => length)).toEqual([MOST_PROBES, 6]);
  });
});
