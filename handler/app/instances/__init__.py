"""Instances of templates: which objects there are, what runs for each, and what ends with it.

    objects        the objects of a watched kind, complete or an error            LISTed, or followed by a process that lives
    registry       the instances that are known, as targets                       one of a process
    vanished       whether an object is gone for certain                          a GET, and what the cluster serves
    template_run   a run of a template: what has vanished, what needs a run       its own record keeps what is held
    instance_run   a run of an instance, or its end
    watch          what happens to objects asks for runs                          a worker's

Law: vanishing is not deleting. Only an object that is gone for certain ends its instance; whatever else hides it holds.
"""
