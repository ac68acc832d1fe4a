import type { ChartObject } from '../support/render-chart.ts';

/** Returns where a value of a Secret is outside of Secrets, as such or encoded. */
export function findSecretFaults(objects: readonly ChartObject[]): string[] {
  const secrets = objects.filter(({ kind }) => kind === 'Secret');
  const encoded = secrets.flatMap(({ data = {} }) => Object.values(data as Record<string, string>));
  const values = encoded.flatMap((value) => [value, Buffer.from(value, 'base64').toString()]);
  return objects
    .filter(({ kind }) => kind !== 'Secret')
    .filter((object) => values.some((value) => JSON.stringify(object).includes(value)))
    .map(({ kind, metadata }) => `${kind} ${metadata.name} has the value of a Secret`);
}
