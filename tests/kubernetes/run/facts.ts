import { z } from 'zod';
import type { Kubectl } from '../stage/kubectl.ts';

const versionSchema = z.object({ serverVersion: z.object({ gitVersion: z.string() }) });
const nodeSchema = z.object({
  status: z.object({
    nodeInfo: z.object({
      architecture: z.string(),
      containerRuntimeVersion: z.string(),
      kernelVersion: z.string(),
      kubeletVersion: z.string(),
      osImage: z.string(),
    }),
  }),
});
type Node = z.infer<typeof nodeSchema>;
const storageClassSchema = z.object({
  metadata: z.object({ name: z.string(), annotations: z.record(z.string(), z.string()).default({}) }),
  provisioner: z.string(),
});

const IS_DEFAULT = 'storageclass.kubernetes.io/is-default-class';

/** Reads what the cluster has, one sentence each. A sentence names each kind that the user may not read. */
export async function readFacts(kubectl: Kubectl): Promise<string[]> {
  const { serverVersion } = versionSchema.parse(JSON.parse(await kubectl.run(['version', '--output=json'])));
  const nodes = await kubectl.list(nodeSchema, 'nodes').catch(() => undefined);
  const classes = await kubectl.list(storageClassSchema, 'storageclasses').catch(() => undefined);
  return [
    `API server ${serverVersion.gitVersion}`,
    ...(nodes === undefined ? ['nodes: may not be read'] : describeNodes(nodes)),
    classes === undefined
      ? 'storage classes: may not be read'
      : `storage classes: ${classes.map(describeClass).join(', ') || 'none'}`,
  ];
}

/**
 * Compares the architecture that the values of the images name with those of the nodes. Throws when no node has it,
 * returns a warning when some have another.
 */
export async function checkArchitectures(kubectl: Kubectl, images: string): Promise<string[]> {
  const nodes = await kubectl.list(nodeSchema, 'nodes').catch(() => []);
  return compareArchitectures(
    images,
    nodes.map(({ status }) => status.nodeInfo.architecture),
  );
}

export function compareArchitectures(images: string, ofNodes: readonly string[]): string[] {
  const [, made] = /^# Images for (\w+)\./m.exec(images) ?? [];
  const others = [...new Set(ofNodes.filter((architecture) => architecture !== made))].join(', ');
  if (made === undefined || others === '') return [];
  if (!ofNodes.includes(made))
    throw new Error(`The images are for ${made}, the nodes are ${others}: run npm run images on such a machine.`);
  return [`The images are for ${made}. Pods that get a node of ${others} fail.`];
}

/** Describes nodes that are alike in one line. */
export function describeNodes(nodes: readonly Node[]): string[] {
  const counts = new Map<string, number>();
  for (const { status } of nodes) {
    const { architecture, containerRuntimeVersion, kernelVersion, kubeletVersion, osImage } = status.nodeInfo;
    const line = `kubelet ${kubeletVersion}, ${containerRuntimeVersion}, Linux ${kernelVersion} ${architecture}, ${osImage}`;
    counts.set(line, (counts.get(line) ?? 0) + 1);
  }
  return [...counts].map(([line, count]) => `${count} ${count === 1 ? 'node' : 'nodes'}: ${line}`);
}

const describeClass = ({ metadata, provisioner }: z.infer<typeof storageClassSchema>) =>
  `${metadata.name} (${provisioner}${metadata.annotations[IS_DEFAULT] === 'true' ? ', the default' : ''})`;
