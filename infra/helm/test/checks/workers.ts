import { type ChartObject, NAMESPACE } from '../support/render-chart.ts';

/** Returns where workers would lose sessions or commands in a rollout, a scale-in or a drained node. */
export function findWorkerFaults(objects: readonly ChartObject[]): string[] {
  const find = (kind: string) => objects.find((one) => one.kind === kind && one.metadata.name.endsWith('-worker'));
  const deployment = find('Deployment');
  const pod = deployment?.spec.template.spec;
  const container = pod?.containers[0];
  if (container === undefined) return ['there are no workers'];
  const env = container.env as { name: string; value?: string }[];
  const settingOf = (name: string) => env.find((one) => one.name === name)?.value;
  const scaled = find('ScaledObject')?.spec;
  const lease = objects.find(({ kind }) => kind === 'Lease');
  return [
    pod.terminationGracePeriodSeconds !== 60 && 'a worker has no 60 s to hand its sessions over',
    pod.automountServiceAccountToken !== true && 'a worker has no token',
    container.livenessProbe?.httpGet?.path !== '/healthz' && 'the liveness of a worker is not asked at /healthz',
    container.readinessProbe?.httpGet?.path !== '/readyz' && 'the readiness of a worker is not asked at /readyz',
    deployment?.spec.strategy.rollingUpdate.maxUnavailable !== 0 && 'a rollout has fewer workers for a while',
    !deployment?.spec.minReadySeconds && 'a rollout goes on before networks know the new worker',
    settingOf('SHELLFLEET_POLICIES') !== 'kubernetes' && 'workers offer another policy',
    settingOf('SHELLFLEET_METRICS_PORT') !== String(container.ports[0].containerPort) && 'the port of metrics differs',
    ...env.map(({ name }, index) => env.findIndex((one) => one.name === name) !== index && `${name} is given twice`),
    scaled === undefined && deployment?.spec.replicas === undefined && 'nobody sets the number of workers',
    scaled !== undefined && deployment?.spec.replicas !== undefined && 'an upgrade would undo the number of KEDA',
    ...(scaled === undefined ? [] : checkScaling(scaled, Number(settingOf('SHELLFLEET_SLOTS')), objects)),
    lease === undefined && 'there is no Lease that owns the Pods of sessions',
  ].filter((fault) => fault !== false);
}

// biome-ignore lint/suspicious/noExplicitAny: the models have validated it.
function checkScaling({ triggers: [trigger], ...scaled }: any, slots: number, objects: readonly ChartObject[]) {
  const { scaleUp, scaleDown } = scaled.advanced.horizontalPodAutoscalerConfig.behavior;
  const { metadata } = trigger;
  const secret = objects.find(({ kind }) => kind === 'TriggerAuthentication')?.spec.secretTargetRef[0].name;
  const url =
    secret === 'given-api-key'
      ? `http://trial-shellfleet-api.${NAMESPACE}.svc:7410/v1/scale`
      : `http://trial-shellfleet-worker.${NAMESPACE}.svc:9464/scale`;
  return [
    trigger.type !== 'metrics-api' && 'KEDA does not ask the workers',
    metadata.url !== url && `KEDA asks ${metadata.url}`,
    metadata.valueLocation !== 'demand' && 'KEDA scales by something else than the demand',
    Number(metadata.targetValue) !== slots * 0.8 && 'KEDA does not fill four fifths of the slots',
    metadata.authMode !== 'bearer' && 'KEDA shows no token',
    trigger.metricType !== 'AverageValue' && 'KEDA compares the demand with one worker',
    scaled.fallback.behavior !== 'currentReplicasIfHigher' && 'workers end while nobody answers KEDA',
    JSON.stringify(scaleUp) !==
      '{"stabilizationWindowSeconds":0,"policies":[{"type":"Percent","value":100,"periodSeconds":15}]}' &&
      'workers start too late',
    JSON.stringify(scaleDown) !==
      '{"stabilizationWindowSeconds":600,"policies":[{"type":"Pods","value":1,"periodSeconds":120}]}' &&
      'workers end too early',
    scaled.minReplicaCount < 1 && 'no worker may be left',
  ];
}
