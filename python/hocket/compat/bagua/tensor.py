"""``bagua.torch_api.tensor``: the methods that Bagua adds to tensors and its communicators need.

Importing this module adds these methods to ``torch.Tensor``, as Bagua does. Bagua's communicators
take ``tensor.ensure_bagua_tensor().bagua_backend_tensor()``. hocket's communicators take any
tensor, so this expression returns the registered tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, Optional

import torch

Getter = Callable[[torch.Tensor], torch.Tensor]
Setter = Callable[[torch.Tensor, torch.Tensor], None]


class _Registered(NamedTuple):
    """The functions that get and set a registered tensor."""

    getter: Optional[Getter]
    setter: Optional[Setter]


class BaguaTensor:
    """The methods that are added to tensors."""

    bagua_tensor_name: str
    bagua_module_name: Optional[str]
    _bagua_registered: _Registered

    def is_bagua_tensor(self) -> bool:
        """Return True if `ensure_bagua_tensor` was called on this tensor."""
        return hasattr(self, "_bagua_registered")

    def ensure_bagua_tensor(
        self,
        name: Optional[str] = None,
        module_name: Optional[str] = None,
        getter_closure: Optional[Getter] = None,
        setter_closure: Optional[Setter] = None,
    ) -> Any:
        """Register the tensor, or the result of `getter_closure` for it. Return this tensor.

        Raises
        ------
        ValueError
            The tensor already has another name. Or a setter is given without a getter.
        """
        if setter_closure is not None and getter_closure is None:
            raise ValueError("setter_closure is given without getter_closure; give both")
        if BaguaTensor.is_bagua_tensor(self) and name is not None:
            found, wanted = (self.bagua_tensor_name, self.bagua_module_name), (name, module_name)
            if found != wanted:
                raise ValueError(
                    f"the tensor is {found[0]!r} of module {found[1]!r} already, "
                    f"and cannot become {name!r} of {module_name!r}"
                )
        else:
            self.bagua_tensor_name = name or ""
            self.bagua_module_name = module_name
        self._bagua_registered = _Registered(getter_closure, setter_closure)
        return self

    def to_bagua_tensor(
        self,
        name: Optional[str] = None,
        module_name: Optional[str] = None,
        getter_closure: Optional[Getter] = None,
        setter_closure: Optional[Setter] = None,
    ) -> Any:
        """Return a new Bagua tensor on the same memory. This tensor stays unchanged."""
        new: Any = self.detach()  # type: ignore[attr-defined]
        return BaguaTensor.ensure_bagua_tensor(
            new, name, module_name, getter_closure, setter_closure
        )

    def bagua_getter_closure(self) -> Any:
        """Return the registered tensor."""
        getter: Any = self._bagua_registered.getter
        return self if getter is None else getter(self)

    def bagua_setter_closure(self, tensor: torch.Tensor) -> None:
        """Replace the registered tensor by another tensor."""
        setter: Any = self._bagua_registered.setter
        if setter is None:
            raise ValueError("the tensor was registered without setter_closure")
        setter(self, tensor)

    def bagua_backend_tensor(self) -> Any:
        """Return the tensor that the methods of communicators accept."""
        return BaguaTensor.bagua_getter_closure(self)

    def bagua_ensure_grad(self) -> Any:
        """Give a parameter a gradient of zeros if it has none. Return this tensor."""
        tensor: Any = self
        if tensor.grad is None:
            if not isinstance(tensor, torch.nn.Parameter):
                raise NotImplementedError(
                    "bagua_ensure_grad is for a torch.nn.Parameter, and this is a plain tensor "
                    "without a gradient; set tensor.grad first"
                )
            tensor.grad = torch.zeros_like(tensor.data)
        return self

    def bagua_set_registered_storage(self, storage: Any, storage_offset: int = 0) -> None:
        """Move the registered tensor to other memory, without copying its values."""
        held: Any = BaguaTensor.bagua_getter_closure(self)
        with torch.no_grad():
            if self._bagua_registered.setter is None:
                held.set_(storage, storage_offset, held.shape)
            else:
                new: Any = torch.zeros_like(held)
                new.set_(storage, storage_offset, held.shape)
                BaguaTensor.bagua_setter_closure(self, new)

    def bagua_mark_communication_ready(self) -> NoReturn:
        """Not available: Bagua's bucket scheduler is not part of hocket."""
        raise NotImplementedError(
            "Bagua's bucket scheduler is not part of this face; call a reduction on the tensor, or "
            "train with DistributedDataParallel over hocket.torch"
        )

    bagua_mark_communication_ready_without_synchronization = bagua_mark_communication_ready


for _name, _method in list(vars(BaguaTensor).items()):
    if "bagua" in _name and callable(_method) and not hasattr(torch.Tensor, _name):
        setattr(torch.Tensor, _name, _method)
