import type { ImageName } from './make-images.ts';

export type NamedImages = Partial<Record<ImageName, string>>;

/** Returns values of the chart, as YAML, that name the images. `isLoaded`: the nodes have them, and pull nothing. */
export function toChartValues(images: NamedImages, { isLoaded }: { isLoaded: boolean }): string {
  const pullPolicy = isLoaded ? 'Never' : 'IfNotPresent';
  const { worker, api, keeper, session, redis } = images;
  const ofSessions = [
    keeper && `  keeper: ${toPlace(keeper)}`,
    session && `  image: ${session}`,
    (keeper || session) && `  pullPolicy: ${pullPolicy}`,
  ].filter(Boolean);
  const lines = [
    `# Images for ${process.arch === 'arm64' ? 'arm64' : 'amd64'}.`,
    worker && `image: ${toPlace(worker, pullPolicy)}`,
    api && `api: { image: ${toPlace(api, pullPolicy)} }`,
    ...(ofSessions.length > 0 ? ['sessions:', ...ofSessions] : []),
    redis && `redis: { embedded: { image: '${redis}', pullPolicy: ${pullPolicy} } }`,
  ].filter(Boolean);
  return `${lines.join('\n')}\n`;
}

/** Returns repository and tag of an image. A registry may have a port, whose colon comes before the last slash. */
function toPlace(image: string, pullPolicy?: string): string {
  const colon = image.lastIndexOf(':');
  const policy = pullPolicy === undefined ? '' : `, pullPolicy: ${pullPolicy}`;
  return `{ repository: '${image.slice(0, colon)}', tag: '${image.slice(colon + 1)}'${policy} }`;
}
