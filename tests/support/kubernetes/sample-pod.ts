/** Returns a Pod that the level `restricted` admits: an image, its command and what else the test wants. */
export function samplePod(name: string, { spec = {}, container = {}, metadata = {} }: PodParts = {}) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 1000,
        runAsGroup: 1000,
        fsGroup: 1000,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [
        {
          name: 'shell',
          image: 'busybox:1',
          resources: { limits: { cpu: '500m', memory: '64Mi' } },
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          ...container,
        },
      ],
      ...spec,
    },
  };
}

export interface PodParts {
  spec?: object;
  /** Fields of the one container. */
  container?: object;
  metadata?: object;
}
