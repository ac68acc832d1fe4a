import { applyPatch, type Operation } from 'rfc6902';
import { ApiFailure, badRequest, unsupportedMediaType } from './status.ts';

const SUPPORTED = 'application/json-patch+json, application/merge-patch+json';

/** Applies a patch of the given content type. Throws what the API server replies to one that does not apply. */
export function patched<T extends object>(current: T, contentType: string, patch: unknown): T {
  const [type] = contentType.split(';');
  if (type === 'application/merge-patch+json') {
    if (typeof patch !== 'object' || patch === null || Array.isArray(patch))
      throw badRequest('error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}');
    return merge(current, patch) as T;
  }
  if (type !== 'application/json-patch+json')
    throw unsupportedMediaType(
      `the body of the request was in an unknown format - accepted media types include: ${SUPPORTED}`,
    );
  if (!Array.isArray(patch)) throw badRequest('error decoding patch: json: cannot unmarshal into Go value of type []');
  const changed = structuredClone(current);
  const failures = applyPatch(changed, patch as Operation[]).filter((failure) => failure !== null);
  if (failures.length > 0)
    throw new ApiFailure(422, 'Invalid', 'the server rejected our request due to an error in our request', {});
  return changed;
}

/** Merges a patch into a value by RFC 7386: null removes a member, an object is merged, the rest replaces. */
function merge(current: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const merged = isRecord(current) ? { ...current } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else merged[key] = merge(merged[key], value);
  }
  return merged;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
