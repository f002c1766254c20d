// A page made of CopilotKit's own components.
import { createElement as h } from 'react';
import { createRoot } from 'react-dom/client';
import { CopilotChat, CopilotKitProvider, useInterrupt } from '@copilotkit/react-core/v2';
import '@copilotkit/react-core/v2/styles.css';

const given = new URLSearchParams(location.search);

function Approvals() {
  useInterrupt({
    agentId: 'tickets',
    render: ({ event, resolve }) => h('button', { id: 'approve', onClick: () => resolve({ approved: true }) }, event.value.message),
  });
  return null;
}

const provider = { runtimeUrl: `${given.get('server')}/v1/copilotkit`, headers: { Authorization: `Bearer ${given.get('token')}` } };
createRoot(document.getElementById('page')).render(h(CopilotKitProvider, provider, h(Approvals), h(CopilotChat, { agentId: 'tickets', threadId: 't1' })));
