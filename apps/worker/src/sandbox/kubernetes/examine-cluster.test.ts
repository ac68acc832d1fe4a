import { describe, expect, test } from 'vitest';
import { podWith, RUNNING } from '../../../test-support/pod.ts';
import { refuseWith, replyWith, startScriptedApi } from '../../../test-support/scripted-api.ts';
import { examineCluster } from './examine-cluster.ts';

const listed = { metadata: { resourceVersion: '1' }, items: [podWith(RUNNING), podWith({})] };

describe('examineCluster', () => {
  test('counts the Pods that run', async () => {
    await using api = await startScriptedApi(replyWith(listed));
    const detail = `${api.settings.server} answers; the namespace sessions has 1 running Pods of sessions`;
    expect(await examineCluster(api.settings, 'sessions')).toBe(detail);
  });

  test('names the advice for a refusal', async () => {
    await using api = await startScriptedApi(refuseWith(404, 'NotFound'));
    await expect(examineCluster(api.settings, 'none')).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      message: expect.stringMatching(/^The API server of Kubernetes refused to list .*kubernetes.namespace exist/),
    });
  });
});
