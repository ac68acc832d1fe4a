import { describe, expect, test } from 'vitest';
import { describeNodes } from './facts.ts';

describe('the facts about a cluster', () => {
  test('count nodes that are alike', () => {
    const nodeInfo = {
      ...{ architecture: 'arm64', containerRuntimeVersion: 'containerd://2.1.0', kernelVersion: '6.12.0' },
      ...{ kubeletVersion: 'v1.34.1', osImage: 'Debian GNU/Linux 12' },
    };
    const nodes = [nodeInfo, { ...nodeInfo, architecture: 'amd64' }, nodeInfo].map((info) => ({
      status: { nodeInfo: info },
    }));
    expect(describeNodes(nodes)).toEqual([
      '2 nodes: kubelet v1.34.1, containerd://2.1.0, Linux 6.12.0 arm64, Debian GNU/Linux 12',
      '1 node: kubelet v1.34.1, containerd://2.1.0, Linux 6.12.0 amd64, Debian GNU/Linux 12',
    ]);
  });
});
