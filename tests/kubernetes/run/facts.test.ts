import { describe, expect, test } from 'vitest';
import { compareArchitectures, describeNodes } from './facts.ts';

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

  test('refuse images for which there is no node, and warn of other nodes', () => {
    const values = "# Images for arm64.\nimage: { repository: 'a' }\n";
    expect(compareArchitectures(values, ['arm64'])).toEqual([]);
    expect(compareArchitectures(values, ['arm64', 'amd64'])).toEqual([
      'The images are for arm64. Pods that get a node of amd64 fail.',
    ]);
    expect(() => compareArchitectures(values, ['amd64'])).toThrow('The images are for arm64, the nodes are amd64');
  });
});
