import { parseArgs } from 'node:util';

/** Choices of one run of `npm run test:kubernetes`. */
export interface KubernetesPlan {
  /** Path of the configuration of kubectl. */
  kubeconfig: string;
  /** Prefix of a registry from which the cluster pulls and to which this machine pushes. */
  registry: string | undefined;
  /** Directory that `npm run images -- --out` wrote, and whose archives the nodes have loaded. */
  images: string | undefined;
  /** Whether the namespace stays. */
  keep: boolean;
}

/** Reads the arguments and KUBECONFIG. Throws for what is missing or unknown. */
export function readPlan(args: string[], env: NodeJS.ProcessEnv): KubernetesPlan {
  const { values } = parseArgs({
    args,
    options: { registry: { type: 'string' }, images: { type: 'string' }, keep: { type: 'boolean', default: false } },
  });
  const { KUBECONFIG: kubeconfig = '' } = env;
  if (kubeconfig === '' || kubeconfig.includes(':'))
    throw new Error(
      'KUBECONFIG must name one file: the tests install a chart into the cluster of its current context.',
    );
  const { registry, images, keep } = values;
  if (registry !== undefined && images !== undefined) throw new Error('Give --registry or --images, not both.');
  return { kubeconfig, registry, images, keep };
}
